"""Slack: what is said once a week (weekly), at once (critical), and how it gets there exactly once (poster)."""
