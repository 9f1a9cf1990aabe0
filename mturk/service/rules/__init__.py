"""The rules of the service that API and worker site share: states, money, who may work on what."""
