"""The slot in the wall: the API through which agents propose, ask and withdraw. It never waits for a mail server."""
