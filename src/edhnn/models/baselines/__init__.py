"""The models that ED-HNN is compared with."""
