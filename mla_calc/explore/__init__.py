"""The interactive explorer: one state, the answers of the other commands to it, and the screen that shows them."""
