/** Setting up a provider account: what `crucible setup` shows and does, independent of the provider. */

/** Flags of `crucible setup` that only some providers have. */
export const ACCOUNT_FLAGS = [
  'region',
  'profile',
  'bucket',
  'own-network',
  'terraform',
  'quota',
  'with-data',
  'buyer',
  'boundary',
  'kms-key',
  'role-path',
] as const
export type AccountFlag = (typeof ACCOUNT_FLAGS)[number]

export interface AccountRequest {
  region?: string
  /** Credentials profile; missing for the default one. */
  profile?: string
  /** Prefix of every name; distinguishes one set-up from another. */
  prefix: string
  /** Name of the bucket; derived from the account and Region if missing. */
  bucket?: string
  /** Create a separate network even if the account has one. */
  hasOwnNetwork: boolean
  /** Whether workers may buy capacity in advance; unchanged if missing. */
  letsWorkersBuy?: boolean
  /** The policy that bounds the permissions of all roles; unchanged if missing. */
  boundary?: string
  /** ARN of the KMS key that encrypts the bucket; unchanged if missing. */
  kmsKey?: string
  /** Path of all roles; unchanged if missing. */
  rolePath?: string
}

/** A resource that the account needs. */
export interface AccountPart {
  id: string
  /** `role`, `bucket`, ... */
  what: string
  name: string
  /** The provider's id, if it differs from the name. */
  providerId?: string
  /**
   * `there`: as it should be. `differs`: ours, but different from what it should be. `missing`. `theirs`: used, but owned by
   * somebody else. `taken`: another resource has this name. `unknown`: could not be read.
   */
  state: 'there' | 'differs' | 'missing' | 'theirs' | 'taken' | 'unknown'
  /** Differences, conflicts, unreadable properties, and properties that set-up leaves unchanged on purpose. */
  remarks: string[]
}

export interface QuotaState {
  code: string
  name: string
  /** Present limit in `unit`; missing if it could not be read. */
  value?: number
  /** Limit that a request asks for. */
  wanted: number
  unit: string
  /** State of the last request, in words. */
  request?: string
  /** A request makes sense: the quota is too small, and no request is open. */
  isAskable: boolean
}

export interface Survey {
  /** Account and identity: lines for people. */
  place: Record<'account' | 'identity' | 'prefix', string> & {
    /** Region; missing for a provider without Regions. */
    region?: string
  }
  parts: AccountPart[]
  /** Sentences for people about cost and omissions. */
  remarks: string[]
  quotas: QuotaState[]
  /** Environment of the client and the workers; unknown values are left out. */
  settings: Record<string, string>
}

export interface Step {
  part: Pick<AccountPart, 'id' | 'what' | 'name'>
  did: 'made' | 'mended' | 'removed' | 'kept' | 'failed'
  /** Why the step failed or was skipped. */
  reason?: string
  /** A permission that was missing. */
  permission?: string
}

export interface Work {
  signal: AbortSignal
  /** Called after each step. */
  onStep: (step: Step) => void
}

/** Why nothing is removed. */
export interface Obstacle {
  message: string
  remedy: string
}

export interface Removal {
  place: Survey['place']
  parts: AccountPart[]
  obstacles: Obstacle[]
}

/** Throws a `BackendError` for errors that make continuing pointless, such as missing credentials. */
export interface AccountSetup {
  /** Reads what exists, differs and is missing. Changes nothing. */
  survey(signal: AbortSignal): Promise<Survey>
  /** Creates missing parts and corrects differing ones. May be called again at any time, even after it was killed. */
  apply(work: Work): Promise<Step[]>
  /** Requests each quota that is too small, unless a request is open. For a provider with the flag `quota`. */
  askForQuotas?(work: Pick<Work, 'signal'>): Promise<QuotaState[]>
  /** Returns the parts that a removal would remove, and its obstacles. */
  removal(signal: AbortSignal): Promise<Removal>
  remove(work: Work & { hasData: boolean }): Promise<Step[]>
  /** Returns the same set-up as Terraform files, by name. Needs no credentials. For a provider with the flag `terraform`. */
  terraform?(signal: AbortSignal): Promise<Record<string, string>>
}
