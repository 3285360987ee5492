/** The same properties without those that are undefined, in the same order: `{ id, ...defined({ hint }) }` has a hint or no such key. */
export function defined<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const kept: { [Key in keyof T]?: Exclude<T[Key], undefined> } = {}
  for (const key of Object.keys(values) as (keyof T)[]) {
    const value = values[key]
    if (value !== undefined) kept[key] = value as Exclude<T[keyof T], undefined>
  }
  return kept
}
