"""What runs the product outside its packages: examples of configuration and the demo."""
