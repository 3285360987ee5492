import type { BackendName } from '../core/offer'
import type { Order } from '../core/job/plan'
import { ACCOUNT_FLAGS, type AccountFlag, type AccountSetup, type AccountRequest } from './account'
import type { Backend } from './backend'
import type { CredentialSource } from './credentials'
import { createEc2Backend } from './ec2'
import { accountOptions, EC2_SETTINGS, parseEc2Config } from './ec2/config'
import { awsCredentials } from './ec2/credentials'
import type * as ec2Setup from './ec2/setup'
import { isOnLoopback } from './loopback'
import { createLocalBackend } from './local'
import { createLambdaBackend } from './lambda'
import { LAMBDA_SETTINGS, parseLambdaConfig } from './lambda/config'
import { LAMBDA_CREDENTIALS } from './lambda/credentials'
import type * as lambdaSetup from './lambda/setup'
import type * as modalSetup from './modal/setup'
import { modalCredentials } from './modal/token-file'
import { createModalBackend } from './modal'
import { MODAL_SETTINGS, parseModalConfig } from './modal/config'
import { LOCAL_SETTINGS, parseLocalConfig } from './local/config'

export * from './account'
export * from './credentials'

/** One setting of a backend, as the documentation lists it. */
interface Setting {
  name: string
  default: string
  meaning: string
}

/** Dependencies that a worker gives to every backend; backends import neither storage nor the configuration of others. */
export interface BackendDeps {
  /** Copies the runner program with this digest to a path. */
  fetchRunner(sha256: string, toPath: string): Promise<void>
  /** Milliseconds since 1970. */
  clock(): number
  /** Milliseconds by a clock that never steps, for durations; `clock` if missing. */
  monotonic?(): number
  /** Deployment whose machines may be found and ended; every deployment's if missing. */
  deployment?: string
  /** A URL from which a machine anywhere can download the runner program with this digest, for at least 15 minutes. */
  runnerUrl(sha256: string): Promise<string>
  /** Returns the hand-over of one send to its machine at launch; `backends/bootstrap.ts` makes the bootstrap of it. */
  handOver?(order: Order, send: string): Promise<HandOver>
  /** The object store, as machines reach it. */
  storeUrl?: string
  /** The attempt's key for its sealed secrets, 64 hex digits. */
  secretKeyOf?(attemptId: string): string
  /**
   * New credentials for the store, sealed with the attempt's key: the text of a file for the runner's `--grant-file`. Missing for
   * a store without credentials. Throws a `BackendError`.
   */
  grantFile?(attempt: Pick<Order, 'jobId' | 'attempt' | 'attemptId'>): Promise<string>
}

/**
 * The bootstrap hand-over (docs/decisions/0041): where a machine fetches the document with the attempt's key, its first grant and the
 * runner's digest, and the key that opens it. The document exists until the machine has read it, and until the settlement at the latest.
 */
export interface HandOver {
  /** Valid as long as a runner may start; reading it needs no credentials. */
  url: string
  /** 64 hex digits; opens this one document. */
  key: string
  /** URL for PUT of why a machine started no runner (`layout.lastWords`); missing if the store signs none. */
  lastWordsUrl?: string
}

/** The result of reading settings: a backend to create, or all their problems at once. */
export type ReadSettings =
  | {
      create(deps: BackendDeps): Promise<Backend>
      /** Whether its machines get their credentials for the store from us. */
      needsGrants: boolean
      /** Whether it counts its free places and holds them for callers (`OffersContext`), so that cached answers about them are wrong. */
      isNear: boolean
      /**
       * Whether its machines are on other hosts, so that they reach neither a folder nor loopback of this host. False also if the provider
       * itself is on loopback, as a small cloud is.
       */
      isRemote: boolean
    }
  | { problems: string[] }

/** The provider of a backend, as the small cloud plays it. */
export interface Simulation {
  /** Settings that lead to the simulated provider; they replace the user's, so that no real account is reached. */
  reach: Readonly<Record<string, string>>
  /** Shorter durations; the user's come first. */
  pace?: Readonly<Record<string, string>>
  /** Whether its machines lack their own keys for the store of the small cloud. */
  needsGrants?: true
}

export interface RegisteredBackend {
  settings: readonly Setting[]
  /** Location of its credentials, for a provider with an account. */
  credentials?(settings: Record<string, string | undefined>): CredentialSource
  /**
   * The provider in the small cloud, from the cloud's facts about it (`endpoint`, and the other values that a client needs); missing if the
   * small cloud does not simulate it.
   */
  simulated?(provider: Readonly<Record<string, string>>): Simulation
  /** Reads the settings by name from an environment. */
  read(settings: Record<string, string | undefined>): ReadSettings
}

/** All backends, in the order of the documentation. */
export const BACKENDS: Readonly<Record<BackendName, RegisteredBackend>> = {
  local: register({
    settings: LOCAL_SETTINGS,
    parse: parseLocalConfig,
    create: createLocalBackend,
    needsGrants: () => true,
    isNear: true,
    isRemote: () => false,
  }),
  ec2: register({
    settings: EC2_SETTINGS,
    parse: parseEc2Config,
    create: createEc2Backend,
    needsGrants: ({ hasGrants }) => hasGrants,
    isNear: false,
    isRemote: ({ endpoint }) => endpoint === undefined || !isOnLoopback(endpoint),
    credentials: awsCredentials,
    simulated: ({ endpoint = '' }) => ({
      reach: { AWS_ENDPOINT_URL: endpoint },
      // Everything is on this machine, and machines start within seconds.
      pace: { CRUCIBLE_EC2_STALE_FOR: '3s', CRUCIBLE_EC2_REGISTER_WITHIN: '2m' },
    }),
  }),
  lambda: register({
    settings: LAMBDA_SETTINGS,
    parse: parseLambdaConfig,
    create: createLambdaBackend,
    needsGrants: () => true,
    isNear: false,
    isRemote: ({ endpoint }) => !isOnLoopback(endpoint),
    credentials: () => LAMBDA_CREDENTIALS,
    simulated: ({ endpoint = '', apiKey = '' }) => ({
      reach: { CRUCIBLE_LAMBDA_ENDPOINT: endpoint, LAMBDA_API_KEY: apiKey },
      pace: { CRUCIBLE_LAMBDA_STALE_FOR: '3s' },
      needsGrants: true,
    }),
  }),
  modal: register({
    settings: MODAL_SETTINGS,
    parse: parseModalConfig,
    create: createModalBackend,
    needsGrants: () => true,
    isNear: false,
    isRemote: ({ url }) => !isOnLoopback(url),
    credentials: modalCredentials,
    simulated: ({ endpoint = '', key = '', secret = '' }) => ({
      reach: { CRUCIBLE_MODAL_URL: endpoint, CRUCIBLE_MODAL_KEY: key, CRUCIBLE_MODAL_SECRET: secret },
      needsGrants: true,
    }),
  }),
}

/** Sets up an account; `environment` may name another address than the provider's. */
type SetUpAccount = (wish: AccountRequest, environment: Record<string, string | undefined>) => AccountSetup

export interface RegisteredAccount {
  /** The variable that names another address than the provider's. */
  address: string
  /** Flags of this provider, in addition to the common ones. Other flags are refused. */
  flags: readonly AccountFlag[]
  open: SetUpAccount
}

/** Accounts that `crucible setup` supports, by provider name. */
export const ACCOUNTS: Readonly<Record<string, RegisteredAccount>> = {
  aws: {
    address: 'AWS_ENDPOINT_URL',
    flags: ACCOUNT_FLAGS,
    open: (wish, environment) => {
      // Loaded here because only set-up waits for its SDK.
      const { createAccountSetup } = require('./ec2/setup') as typeof ec2Setup
      return createAccountSetup(accountOptions(wish, environment))
    },
  },
  lambda: {
    address: 'CRUCIBLE_LAMBDA_ENDPOINT',
    flags: [],
    open: (wish, environment) => {
      const { createLambdaSetup } = require('./lambda/setup') as typeof lambdaSetup
      return createLambdaSetup(wish, environment)
    },
  },
  modal: {
    address: 'CRUCIBLE_MODAL_URL',
    flags: [],
    open: (wish, environment) => {
      const { createModalSetup } = require('./modal/setup') as typeof modalSetup
      return createModalSetup(wish, environment)
    },
  },
}

interface Registration<Config> extends Pick<RegisteredBackend, 'credentials' | 'simulated'> {
  settings: readonly Setting[]
  parse: (settings: Record<string, string | undefined>) => { config: Config } | { problems: string[] }
  create: (config: Config, deps: BackendDeps) => Promise<Backend>
  needsGrants: (config: Config) => boolean
  isNear: boolean
  isRemote: (config: Config) => boolean
}

/** Keeps the types of a backend's parser and factory consistent. */
function register<Config>({
  settings,
  parse,
  create,
  needsGrants,
  isNear,
  isRemote,
  ...facts
}: Registration<Config>): RegisteredBackend {
  return {
    ...facts,
    settings,
    read: (values) => {
      const parsed = parse(values)
      if ('problems' in parsed) return parsed
      const { config } = parsed
      return {
        create: (deps) => create(config, deps),
        needsGrants: needsGrants(config),
        isNear,
        isRemote: isRemote(config),
      }
    },
  }
}
