/** True for a path that stays below its folder: relative, no `.`, `..` or empty parts, no NUL. */
export function isInnerPath(path: string): boolean {
  return !path.includes('\0') && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}
