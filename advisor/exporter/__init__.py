"""The host agent: follows this host's request logs and exposes how long requests are, as histograms on /metrics."""
