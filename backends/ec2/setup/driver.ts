import type { Clients } from './clients'
import type { Choices } from './description'
import { SETUP_TAGS, type Piece } from './pieces'

/** The account while it is looked at or worked on. */
export interface Site {
  clients: Clients
  choices: Choices
  signal: AbortSignal
  /** Ids of the pieces that are there, as the provider has them. */
  ids: Map<string, string>
  /** The same in the other Regions, of the one with the store; missing where there are none. */
  others?: readonly Site[]
}

/** What there is in the place of a piece. */
export interface Found {
  id: string
  /** `taken`: it was not made by this set-up and is in the way. `theirs`: it was not, and is used as it is. */
  owner: 'ours' | 'theirs' | 'taken'
  /** How it is not as it should be, or why it is in the way; sentences without a full stop. */
  remarks: string[]
  /** What set-up leaves unchanged, and why; sentences without a full stop. It needs no other work. */
  notes?: string[]
  /** More of the same that a lost answer left behind. */
  extras: string[]
}

/** What became of something that was to be removed. */
export type Gone = { kept: string } | undefined

/** The calls for one kind of piece. Each of them throws `AwsError`. */
export interface Driver<P extends Piece> {
  read(piece: P, site: Site): Promise<Found | undefined>
  /** Makes it, tagged as ours from its first moment; what more it takes is `mend`'s. Answers its id. */
  make(piece: P, site: Site): Promise<string>
  /** Makes it as it should be, from whatever it is. */
  mend(piece: P, id: string, site: Site): Promise<void>
  /** Ids of all that this set-up has made of this kind, also what the description does not want any more. */
  all(piece: P | undefined, site: Site): Promise<{ id: string; name: string }[]>
  /** Absent is success. */
  remove(id: string, site: Site & { hasData: boolean }): Promise<Gone>
}

export const ours = (id: string, remarks: string[] = []): Found => ({
  ...{ id, owner: 'ours', remarks, extras: [] },
})

export function tagsFor(
  { choices: { prefix } }: Site,
  more: Record<string, string> = {},
): { Key: string; Value: string }[] {
  return Object.entries({ [SETUP_TAGS.setup]: prefix, ...more }).map(([Key, Value]) => ({ Key, Value }))
}

export function isOurs(
  { choices: { prefix } }: Site,
  tags: readonly { Key?: string | undefined; Value?: string | undefined }[] | undefined,
): boolean {
  return (tags ?? []).some(({ Key, Value }) => Key === SETUP_TAGS.setup && Value === prefix)
}

/** Whether two documents say the same, whatever the order of their keys. */
export function isSame(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b)
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([x], [y]) => (x < y ? -1 : 1)))
      : each,
  )
}
