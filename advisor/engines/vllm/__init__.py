"""What is particular to vLLM."""
