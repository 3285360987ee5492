import type { OwnTags } from '../../../core/own-tags'
import type { StackResource } from '@aws-sdk/client-cloudformation'
import type { AccountRequest } from '../../account'
import type { Clients } from './clients'
import type { Stack } from './stack'

/** Set-up of one Region: its stack, and what the template gets. */
export interface RegionSetup {
  clients: Clients
  region: string
  /** The Region of the store and of the roles. */
  isHome: boolean
  signal: AbortSignal
  prefix: string
  /** Tags of the account's own on everything that is created. */
  tags: OwnTags
  account: string
  bucket: string
  /** The deployed stack; missing before the first deployment. */
  stack?: Stack
  /** The resources of the stack. */
  resources: readonly StackResource[]
  /** Parameters of the template. */
  parameters: Readonly<Record<string, string>>
}

export interface Place {
  /** The Region of the store first. */
  sites: [RegionSetup, ...RegionSetup[]]
  identity: string
  letsWorkersBuy: boolean
}

export type SetupRequest = Omit<AccountRequest, 'region'> & {
  /** The first one has the store, unless an earlier set-up chose another. */
  regions: readonly string[]
  tags?: OwnTags
}

export const SETUP_TAGS = {
  /** On everything that set-up creates: its prefix. */
  setup: 'crucible:setup',
  /** On the machines' role: the Regions, that of the store first. */
  regions: 'crucible:region',
} as const

export function isOurs(
  prefix: string,
  tags: readonly { Key?: string; Value?: string }[] | undefined,
): boolean {
  return (tags ?? []).some(({ Key, Value }) => Key === SETUP_TAGS.setup && Value === prefix)
}

export type RoleOf = 'machine' | 'grant' | 'worker' | 'buyer'
export const ROLES: readonly RoleOf[] = ['machine', 'grant', 'worker', 'buyer']

export const roleName = (prefix: string, of: RoleOf): string => `${prefix}-${of}`
