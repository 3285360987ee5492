/** EC2 calls that find, create and remove parts of networks. */
import type * as ec2 from '@aws-sdk/client-ec2'
import { AwsError } from '../sdk/api'
import { insist, repeat, settle, STILL_IN_USE } from './clients'
import { ours, tagsFor, type Found, type Site } from './driver'
import { SETUP_TAGS } from './pieces'

export const EVERYWHERE = '0.0.0.0/0'

type Send = <T>(
  send: (client: ec2.EC2Client, options: { abortSignal: AbortSignal }) => Promise<T>,
) => Promise<T>

export const reading =
  ({ clients, signal }: Site): Send =>
  (send) =>
    repeat(() => send(clients.ec2, { abortSignal: signal }), signal)
/** Refers to something that was created a moment ago. */
export const settling =
  ({ clients, signal }: Site): Send =>
  (send) =>
    settle(() => send(clients.ec2, { abortSignal: signal }), signal)
/** Creates something, so it is sent once. */
export const making =
  ({ clients, signal }: Site): Send =>
  (send) =>
    insist(() => send(clients.ec2, { abortSignal: signal }), { signal, until: /NotFound/ })

/** A missing part counts as removed, and a part in use will soon be free. */
export async function dropping(site: Site, send: Parameters<Send>[0]): Promise<void> {
  const { clients, signal } = site
  await insist(() => send(clients.ec2, { abortSignal: signal }), {
    ...{ signal, isRepeatable: true, until: STILL_IN_USE },
  }).catch((error: unknown) => {
    if (!(error instanceof AwsError && /NotFound|NotAttached/.test(error.code))) throw error
  })
}

export const ourOwn = ({ choices: { prefix } }: Site): { Filters: ec2.Filter[] } => ({
  Filters: [{ Name: `tag:${SETUP_TAGS.setup}`, Values: [prefix] }],
})

export function marked(
  site: Site,
  kind: ec2.ResourceType,
  Name: string,
): { TagSpecifications: ec2.TagSpecification[] } {
  return { TagSpecifications: [{ ResourceType: kind, Tags: tagsFor(site, { Name }) }] }
}

/** One is used; the others are duplicates after lost answers. */
export function found<T>(
  all: readonly T[],
  idOf: (one: T) => string,
  remarksOf: (one: T) => string[] = () => [],
): Found | undefined {
  const [first, ...rest] = all
  return first && { ...ours(idOf(first), remarksOf(first)), extras: rest.map(idOf) }
}

export const idsOf = (parts: readonly (string | undefined)[]): { id: string; name: string }[] =>
  parts.map((id = '') => ({ id, name: id }))
