"""From outcomes to numbers: rewards, moments and duration weights."""
