"""What is particular to TensorRT-LLM's trtllm-serve."""
