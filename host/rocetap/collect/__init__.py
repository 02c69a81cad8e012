"""The collector: the profiles' collector rules, outcomes, store and server."""
