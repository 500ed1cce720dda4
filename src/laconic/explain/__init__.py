"""Why a model says what it says: its rules in the user's words, and what decides about one row."""
