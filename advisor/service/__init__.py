"""The service: a daemon, its schedule, its steps in processes of their own, its memory."""
