"""What an enemy can do: attacks through the seam, each beside the best that is possible."""
