"""What stored noisy answers already say: repeats, complements, unions, any linear combination."""
