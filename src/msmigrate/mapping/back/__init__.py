"""How graph keys follow from a pynative.yaml: the functions that rows of the mapping table name as their `back`."""
