"""The vocabulary of the advisor: frozen values, no I/O, no clock."""
