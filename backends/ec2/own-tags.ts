import { isOwnTagKey, isOwnTagValue, OWN_TAG_KEYS, type OwnTags } from '../../core/own-tags'
import { Complaint, listOf, type Parser } from '../settings'

/** EC2 allows 50 tags; Crucible sets up to fifteen, and a job up to ten. */
const TAGS_MAX = 25
const ADVICE = `write at most ${TAGS_MAX} such as team=ml,cost-center=42: ${OWN_TAG_KEYS}, also with a prefix other than aws: and crucible:`

const isUsableKey = (key: string): boolean =>
  isOwnTagKey(key.replaceAll(':', '-')) && !/^(?:aws|crucible):/i.test(key)

export const parseOwnTags: Parser<OwnTags> = (text) => {
  const pairs = listOf(text).map((pair): [string, string] => {
    const at = pair.indexOf('=')
    return at === -1 ? ['', ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
  })
  const isUsable = pairs.every(([key, value]) => isUsableKey(key) && isOwnTagValue(value))
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
