"""Serving Advisor: which flags should these LLM servers run with? It advises, it never acts."""

__version__ = "0.1.0"
