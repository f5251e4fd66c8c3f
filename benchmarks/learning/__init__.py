"""How good is what is learned: floor, peer, papers, ours and ceiling on the same splits."""
