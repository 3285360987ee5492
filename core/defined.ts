/** Returns the properties that are defined, in the same order: `{ id, ...defined({ hint }) }` has a hint or no such key. */
export function defined<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  // An assignment to `__proto__` would set no property.
  const kept = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(kept) as { [Key in keyof T]?: Exclude<T[Key], undefined> }
}

/** Returns the named properties that are present. */
export function picked<T extends object, Key extends keyof T>(from: T, keys: readonly Key[]): Pick<T, Key> {
  const kept: Partial<Pick<T, Key>> = {}
  for (const key of keys) if (from[key] !== undefined) kept[key] = from[key]
  // Only optional properties can be absent, so the type holds.
  return kept as Pick<T, Key>
}

/** An object without some of its properties. */
export function without<T extends object, K extends PropertyKey>(value: T, names: readonly K[]): Omit<T, K> {
  const kept = Object.entries(value).filter(([name]) => !(names as readonly PropertyKey[]).includes(name))
  return Object.fromEntries(kept) as Omit<T, K>
}
