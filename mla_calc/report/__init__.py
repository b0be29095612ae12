"""One record of an answer, and every format made from it."""
