"""From outcomes to numbers: rewards and duration weights."""
