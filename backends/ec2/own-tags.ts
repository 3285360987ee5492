import { Complaint, listOf, type Parser } from '../settings'

/** Tags that an account wants on everything, such as for its bills and tag policies, by key. */
export type OwnTags = Readonly<Record<string, string>>

/** EC2 allows 50 tags; Crucible sets up to twenty. */
const TAGS_MAX = 25
/**
 * A machine shows its tags in its metadata, which takes fewer keys than other tags ("Use instance tags in instance metadata", EC2 user
 * guide): no `/`, no space, no letters beyond ASCII, and none of three names.
 */
const KEY = /^(?!aws:|crucible:|(?:\.{1,2}|_index)$)[a-z\d+\-._:@]{1,127}$/i
const VALUE = /^[\p{L}\p{N} +\-=._:/@]{0,256}$/u
const ADVICE = `write at most ${TAGS_MAX} such as team=ml,cost-center=42: keys of letters, digits and +-._:@, not "Name" and not beginning with aws: or crucible:`

export const parseOwnTags: Parser<OwnTags> = (text) => {
  const pairs = listOf(text).map((pair): [string, string] => {
    const at = pair.indexOf('=')
    return at === -1 ? ['', ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
  })
  const isUsable = pairs.every(([key, value]) => KEY.test(key) && key !== 'Name' && VALUE.test(value))
  const tags = Object.fromEntries(pairs)
  return isUsable && pairs.length <= TAGS_MAX && Object.keys(tags).length === pairs.length
    ? tags
    : new Complaint(ADVICE)
}

/** The tags as one text, for an offer's data; missing without any. */
export function writeOwnTags(tags: OwnTags): string | undefined {
  const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))
  return pairs.length === 0 ? undefined : JSON.stringify(pairs)
}

/** The tags in an offer's data. */
export function readOwnTags(data: Partial<Record<string, string>> | undefined): OwnTags {
  const text = data?.['ownTags']
  return text === undefined ? {} : Object.fromEntries(JSON.parse(text) as [string, string][])
}
