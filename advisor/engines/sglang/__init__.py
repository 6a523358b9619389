"""What is particular to SGLang."""
