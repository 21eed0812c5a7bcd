// The mark of the product.

export function Mark() {
  return <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#2f5fd0" /><path stroke="none" d="M8 8h16v4H8zm0 6h16v4H8zm0 6h10v4H8z" fill="#fff" /></svg>;
}
