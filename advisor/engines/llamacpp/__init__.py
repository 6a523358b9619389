"""What is particular to llama.cpp's server."""
