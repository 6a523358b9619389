"""What is particular to Dynamo's front end."""
