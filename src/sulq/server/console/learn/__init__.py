"""The console's page for fitting learners."""
