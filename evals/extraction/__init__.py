"""How much of a long real conversation the notes made without a model still hold."""
