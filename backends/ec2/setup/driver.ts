import type { Clients } from './clients'
import type { Choices } from './description'
import { SETUP_TAGS, type Piece } from './pieces'

/** The account during a survey or a set-up. */
export interface Site {
  clients: Clients
  choices: Choices
  signal: AbortSignal
  /** Provider ids of the existing pieces. */
  ids: Map<string, string>
  /** The same in the other Regions, by the Region of the store; missing without other Regions. */
  others?: readonly Site[]
}

/** The current state of a piece. */
export interface Found {
  id: string
  /** `taken`: not created by this set-up, and in the way. `theirs`: not created by it, and used as it is. */
  owner: 'ours' | 'theirs' | 'taken'
  /** How it differs, or why it is in the way; sentences without a full stop. */
  remarks: string[]
  /** What set-up leaves unchanged, and why; sentences without a full stop. It needs no other work. */
  notes?: string[]
  /** Duplicates that a lost answer left behind. */
  extras: string[]
}

/** The outcome of a removal. */
export type Gone = { kept: string } | undefined

/** The calls for one kind of piece. Each of them throws `AwsError`. */
export interface Driver<P extends Piece> {
  read(piece: P, site: Site): Promise<Found | undefined>
  /** Creates it with our tags from the start; it may be incomplete. Returns its id. */
  make(piece: P, site: Site): Promise<string>
  /** Corrects it from any state. */
  mend(piece: P, id: string, site: Site): Promise<void>
  /** Ids of everything of this kind that this set-up created, even if the description no longer needs it. */
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

/** Whether two documents are equal, independent of the order of their keys. */
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
