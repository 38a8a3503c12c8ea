"""Rows of tables and lists that back ends export, each as a span; shared by the sources whose formats have such rows."""
