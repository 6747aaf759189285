"""The parts of the merge: numbered rows, turns of writes, folding of fields, play, and what comes out."""
