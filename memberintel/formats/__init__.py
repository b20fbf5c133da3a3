"""How numbers and moments are written where no page says otherwise."""
