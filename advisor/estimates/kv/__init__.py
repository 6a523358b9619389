"""KV cache arithmetic: what the layers of a model store, how an engine lays that out in blocks, and in what memory."""
