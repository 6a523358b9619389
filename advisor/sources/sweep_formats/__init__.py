"""What load generators write about a sweep, one file a tool."""
