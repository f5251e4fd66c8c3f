"""What an analyst holds: answers, their readings and error bars. Post-processing only."""
