"""How well the sanitiser tells what speaks to the machinery from honest business prose."""
