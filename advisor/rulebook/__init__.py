"""Facts -> findings -> advice: the rule schema, its conditions, the judge, and the arbiter of one change at a time."""
