/** Tags that people want on resources, such as for bills and tag policies, by key. */
export type OwnTags = Readonly<Record<string, string>>

/**
 * A machine may show its tags in its metadata, which takes fewer keys than other tags: no `/`, no space, no letters beyond ASCII, and none
 * of three names ("Use instance tags in instance metadata" in the guide of the provider with the narrowest rule). A colon ends a prefix,
 * and providers and Crucible reserve some.
 */
const KEY = /^(?!(?:\.{1,2}|_index|Name)$)[a-z\d+\-._@]{1,127}$/i
const VALUE = /^[\p{L}\p{N} +\-=._:/@]{0,256}$/u

/** What a key of a tag may be, completing "write ...". */
export const OWN_TAG_KEYS = 'keys of letters, digits and +-._@, not "Name"'

/** Whether every provider with tags accepts the key, and Crucible does not set it. */
export const isOwnTagKey = (key: string): boolean => KEY.test(key)
export const isOwnTagValue = (value: string): boolean => VALUE.test(value)
