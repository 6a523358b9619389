"""The daemon's work, one file a kind; each has `run`, which opens the store, does its part and gives an account.

All that lasts is in the store: a step that is killed at any moment has either recorded its part or has not.
"""
