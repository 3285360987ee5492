/** True for a path that stays below where it is put: relative, no `.`, `..` or empty parts, no NUL. */
export function isInnerPath(path: string): boolean {
  return !path.includes('\0') && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}
