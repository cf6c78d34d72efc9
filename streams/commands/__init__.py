"""Commands that wire several parts together; the others live beside what they do."""
