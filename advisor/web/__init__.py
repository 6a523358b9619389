"""Read-only HTTP: the page, the JSON of the contract, metrics and health. Nothing can be changed through it."""
