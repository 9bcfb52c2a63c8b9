class TextFiles: pass
