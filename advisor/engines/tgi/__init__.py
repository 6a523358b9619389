"""What is particular to Text Generation Inference."""
