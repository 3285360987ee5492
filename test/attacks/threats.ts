/** What is tried against Crucible: the rows of docs/guides/security.md, each with the tests that try it. */

/** Tests of Jest by file and the beginning of their full names, or of the runner by Python module. */
export type Proof = { file: string; tests: string } | { python: string }

export interface Threat {
  from: string
  tries: string
  /** What stops it. */
  keeps: string
  proof: Proof
}

const STRANGERS = 'test/workflows/strangers.e2e.test.ts'
const DEV = 'test/cli/dev/strangers.e2e.test.ts'
const USERS = 'test/backends/local/job-users.test.ts'
const WALLS = 'test/runner/container-walls.test.ts'

export const THREATS: readonly Threat[] = [
  {
    from: 'Temporal client',
    tries: 'start a workflow without the key',
    keeps: 'every input is signed',
    proof: { file: STRANGERS, tests: 'a stranger who reaches the Temporal server starts no job' },
  },
  {
    from: 'Temporal client',
    tries: 'run an activity with copied arguments',
    keeps: 'a signature is for one run',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server launches and ends no machine',
    },
  },
  {
    from: 'Temporal client',
    tries: 'send updates and signals to a job',
    keeps: 'unsigned ones dropped',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server stops, moves and changes no job',
    },
  },
  {
    from: 'Temporal client',
    tries: 'replay a signed input under another id or type',
    keeps: 'the signature covers id, type and time',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server does not run a job a second time',
    },
  },
  {
    from: 'Temporal client',
    tries: 'run an ended job again',
    keeps: 'its record',
    proof: { file: STRANGERS, tests: 'a stranger who reaches the Temporal server runs no job again' },
  },
  {
    from: 'Temporal client',
    tries: "start a schedule's run by a copy or a trigger",
    keeps: 'the store uses up each date',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server starts no run of a schedule',
    },
  },
  {
    from: 'Temporal client',
    tries: 'use anything signed again',
    keeps: 'table below',
    proof: { file: 'test/attacks/permissions.test.ts', tests: 'the table of signed inputs' },
  },
  {
    from: 'Temporal client',
    tries: 'appear in crucible list',
    keeps: 'the store must know it',
    proof: { file: STRANGERS, tests: 'a stranger who reaches the Temporal server is not among' },
  },
  {
    from: 'Temporal client',
    tries: 'lie in crucible list',
    keeps: 'the record',
    proof: { file: 'test/client/job/list.test.ts', tests: 'the list of jobs has the recorded state of' },
  },
  {
    from: 'Temporal client',
    tries: 'take an id first',
    keeps: 'submit refuses',
    proof: { file: STRANGERS, tests: 'a stranger who reaches the Temporal server takes no id of a job' },
  },
  {
    from: 'Temporal client',
    tries: 'use up the signals of an attempt',
    keeps: 'its job cancels it',
    proof: {
      file: 'test/activities/machine/draining.test.ts',
      tests: 'an attempt that is to stop is cancelled if the server takes no more signals',
    },
  },
  {
    from: 'Temporal client',
    tries: 'copy an approval to another run',
    keeps: 'it names its run',
    proof: {
      file: 'test/workflows/interceptors.test.ts',
      tests: 'a workflow of a deployment with a key takes no update that approves another run',
    },
  },
  {
    from: 'Temporal client',
    tries: 'reset an attempt to buy again',
    keeps: 'its record',
    proof: {
      file: 'test/activities/machine/backend.test.ts',
      tests: 'launch buys nothing for an attempt that is over',
    },
  },
  {
    from: 'Temporal client',
    tries: 'reset a job to keep it open',
    keeps: 'it ends, after its machine',
    proof: {
      file: 'test/workflows/resets.e2e.test.ts',
      tests: 'a job that takes other steps after a reset ends with what to do',
    },
  },
  {
    from: 'Temporal client',
    tries: 'flood workflows with signed copies',
    keeps: 'each counts once',
    proof: {
      file: 'test/workflows/flood.e2e.test.ts',
      tests: 'a flood of copies of signed messages changes no money',
    },
  },
  {
    from: 'Temporal client',
    tries: 'copy a signed result',
    keeps: 'it names the asker',
    proof: {
      file: 'test/workflows/copied-answers.e2e.test.ts',
      tests: 'a purchase is made once when its answer is the signed',
    },
  },
  {
    from: 'Temporal client',
    tries: 'forge failures',
    keeps: 'signed details',
    proof: {
      file: 'test/workflows/interceptors.test.ts',
      tests: 'a workflow of a deployment with a key takes no class of a failure',
    },
  },
  {
    from: 'Temporal client',
    tries: 'change signed arguments',
    keeps: 'the signature covers them',
    proof: { file: 'test/storage/payload-seal.test.ts', tests: 'PayloadSeal refuses' },
  },
  {
    from: 'network',
    tries: 'flood /metrics',
    keeps: 'readings are shared',
    proof: { file: 'test/activities/metrics.test.ts', tests: 'the gauges are read once' },
  },
  {
    from: 'local web page',
    tries: 'start a workflow through a port',
    keeps: 'no HTTP API; a proxy',
    proof: { file: DEV, tests: 'the ports of a dev server start no workflow for a web page' },
  },
  {
    from: 'local web page',
    tries: 'reach the Web UI by DNS rebinding or across origins',
    keeps: 'loopback names and own origin only',
    proof: { file: 'test/cli/dev/temporal/ui-door.test.ts', tests: 'the door of the Web UI refuses' },
  },
  {
    from: 'another local user',
    tries: 'read the home',
    keeps: 'its mode is 0700',
    proof: { file: 'test/storage/deployment-key.test.ts', tests: 'closeHome' },
  },
  {
    from: 'another local user',
    tries: 'use keys, ports, metadata of crucible dev --sim',
    keeps: 'only their owner reads drawn keys',
    proof: { file: 'test/attacks/other-user.e2e.test.ts', tests: 'another user of the host of crucible' },
  },
  {
    from: 'wrong key',
    tries: 'join as a worker or client',
    keeps: "it must match the store's",
    proof: { file: 'test/storage/deployment-key.test.ts', tests: 'openDeploymentKey refuses' },
  },
  {
    from: 'another deployment',
    tries: 'end a machine with the same job id and host',
    keeps: 'their names carry the deployment',
    proof: {
      file: 'test/backends/local/two-deployments.test.ts',
      tests: 'machines of two deployments with the same id, run by',
    },
  },
  {
    from: 'another deployment',
    tries: 'end a machine with the same job id and account',
    keeps: 'tags and tokens carry it',
    proof: {
      file: 'test/backends/two-deployments.test.ts',
      tests: 'machines of two deployments with the same attempt id at',
    },
  },
  {
    from: 'another deployment',
    tries: 'take tasks of the same server',
    keeps: 'they stop before they poll',
    proof: {
      file: 'test/service/deployment.e2e.test.ts',
      tests: "a deployment is known to a worker and a client with another deployment's key, which stop",
    },
  },
  {
    from: 'container job',
    tries: 'read keys, other jobs or the store',
    keeps: 'only its own directories are mounted',
    proof: { file: WALLS, tests: 'a job in a real container sees its own directories' },
  },
  {
    from: 'container job',
    tries: 'run code outside by LD_PRELOAD',
    keeps: 'renamed variables',
    proof: {
      file: 'test/runner/container.test.ts',
      tests: 'an order with an image has variables that the engine on the machine does not obey',
    },
  },
  {
    from: 'container job',
    tries: 'leave set-user-ID programs',
    keeps: 'closed directories',
    proof: { python: 'test_machine' },
  },
  {
    from: 'container job',
    tries: 'mount, change the kernel, gain privileges',
    keeps: 'no-new-privileges, six capabilities',
    proof: { file: WALLS, tests: 'a job in a real container has no more rights' },
  },
  {
    from: 'container job',
    tries: "get the machine's files through links",
    keeps: 'refused',
    proof: { file: WALLS, tests: 'a job in a real container gets no file of the host' },
  },
  {
    from: 'container job',
    tries: 'have the runner write through a link',
    keeps: 'never in control/',
    proof: { file: WALLS, tests: 'a job in a real container leads no write of the runner' },
  },
  {
    from: 'container job',
    tries: 'save its files through links',
    keeps: 'left out',
    proof: { file: WALLS, tests: 'a job in a real container gets no file of the host into a checkpoint' },
  },
  {
    from: 'job on EC2',
    tries: 'reach other jobs in the store',
    keeps: 'its credentials cover one attempt',
    proof: { file: 'test/small-cloud/front.test.ts', tests: 'grants let a machine do' },
  },
  {
    from: 'small-cloud job',
    tries: 'reach others by paths, upload ids or copy sources',
    keeps: 'parsed and written anew',
    proof: {
      file: 'test/small-cloud/front-attacks.test.ts',
      tests: 'the front of the object store, asked with the grant of another job,',
    },
  },
  {
    from: 'small-cloud job',
    tries: "send root's S3 server out of its folder",
    keeps: 'own user, own root directory',
    proof: {
      file: 'test/cli/dev/versitygw/front.test.ts',
      tests: "the S3 server of root's small cloud has a user of its own",
    },
  },
  {
    from: 'small-cloud job',
    tries: "read another machine's files and keys",
    keeps: 'a user each, under root',
    proof: {
      file: 'packages/small-cloud/test/machines/machine.test.ts',
      tests: "a machine of root's simulator finds",
    },
  },
  {
    from: 'small-cloud job',
    tries: 'call other services with its grant',
    keeps: 'it is for the store',
    proof: {
      file: 'test/store-requests/forms.test.ts',
      tests: 'the services of AWS in the small cloud, sent forms',
    },
  },
  {
    from: 'Modal key',
    tries: "reach operators' routes by encoded paths",
    keeps: 'parsed once',
    proof: {
      file: 'test/store-requests/fronts.test.ts',
      tests: 'the services of the small cloud, sent drawn requests,',
    },
  },
  {
    from: 'local web page',
    tries: 'smuggle requests through the proxy',
    keeps: 'written anew',
    proof: {
      file: 'test/store-requests/fronts.test.ts',
      tests: 'the door of the Web UI, sent drawn requests,',
    },
  },
  {
    from: 'another local user',
    tries: "plant Node's compiled code",
    keeps: 'own folder',
    proof: { file: 'test/cli/kit/compile-cache.test.ts', tests: 'compiled code that Node keeps' },
  },
  {
    from: 'another local user',
    tries: 'imitate a control group',
    keeps: 'own processes count',
    proof: {
      file: 'test/backends/local/host.test.ts',
      tests: 'processes belong to a machine of an ordinary user only if they can be',
    },
  },
  {
    from: 'another local user',
    tries: 'redirect port claims by a link',
    keeps: 'own folders only',
    proof: { file: 'test/cli/dev/claim-port.test.ts', tests: 'a claim on a port removes no file' },
  },
  {
    from: 'job on EC2',
    tries: 'forge other documents',
    keeps: 'a narrow grant',
    proof: { file: 'test/small-cloud/front.test.ts', tests: 'grants let a machine do' },
  },
  {
    from: 'job on EC2',
    tries: "use the store with the machine's role",
    keeps: 'it has no access; doctor warns',
    proof: { file: 'test/backends/ec2/setup/permissions.test.ts', tests: 'the role crucible-machine' },
  },
  {
    from: 'local job, root workers',
    tries: 'read keys, the store, the worker or other jobs',
    keeps: 'its own user, closed directories',
    proof: { file: USERS, tests: 'a local job next to a worker that is root reads neither' },
  },
  {
    from: 'local job, root workers',
    tries: 'end processes of others',
    keeps: 'its user has no other processes',
    proof: { file: USERS, tests: 'a local job next to a worker that is root ends no process' },
  },
  {
    from: 'local job, root workers',
    tries: "get root's files through links",
    keeps: 'the same rules as in a container',
    proof: { file: USERS, tests: 'a local job next to a worker that is root gets no file' },
  },
  {
    from: 'local job, root workers',
    tries: 'gain privileges, also through LD_PRELOAD',
    keeps: 'no-new-privileges; root runs without its variables',
    proof: { file: USERS, tests: 'a local job next to a worker that is root gets no rights' },
  },
  {
    from: 'any job',
    tries: 'leave a daemon that outlives the guard',
    keeps: 'a control group, if possible',
    proof: {
      file: 'test/runner/death.test.ts',
      tests: 'daemons that outlive guard, timekeeper, runner and leash',
    },
  },
  {
    from: 'any job',
    tries: 'swap a file for a link',
    keeps: 'no step follows links',
    proof: { python: 'test_walls' },
  },
  {
    from: 'any job',
    tries: 'stall it with a sparse or unreadable file',
    keeps: 'it is left out',
    proof: { python: 'test_keeper' },
  },
  {
    from: 'any job',
    tries: 'stall it with pipes, forged formats',
    keeps: 'limits',
    proof: { python: 'test_formats' },
  },
  {
    from: 'any job',
    tries: 'stall it with progress bars',
    keeps: 'linear time',
    proof: { python: 'test_logs' },
  },
  {
    from: 'any job',
    tries: 'stop beats by output, names, patterns',
    keeps: 'their own process',
    proof: { file: 'test/beats/beats.test.ts', tests: 'the beats of a runner go on' },
  },
  {
    from: 'any job',
    tries: 'do all at once',
    keeps: 'no late beat',
    proof: { file: 'test/hostile/hostile.e2e.test.ts', tests: 'a job that does everything hostile at once' },
  },
  {
    from: 'any job',
    tries: 'freeze runner or timekeeper',
    keeps: 'the other ends the machine',
    proof: {
      file: 'test/runner/held.test.ts',
      tests: 'a runner whose work on a job’s data does not return ends at the hard stop',
    },
  },
  {
    from: 'any job',
    tries: 'stall it with nested or circular folders',
    keeps: 'each is read once',
    proof: { python: 'test_globs' },
  },
  {
    from: 'any job',
    tries: 'spoil beats with endless numbers or nesting',
    keeps: 'limits',
    proof: { python: 'test_documents' },
  },
  {
    from: 'any job',
    tries: "put links or pictures on Temporal's pages",
    keeps: 'text is escaped',
    proof: { file: 'test/core/markdown.test.ts', tests: 'text from outside in markdown' },
  },
  {
    from: 'any job',
    tries: 'print a secret in hex, base32, base64 or escapes',
    keeps: 'the log has ***',
    proof: { python: 'test_logs' },
  },
  {
    from: 'any job',
    tries: "control the user's terminal",
    keeps: 'control sequences are shown, not obeyed',
    proof: { file: 'test/cli/kit/output.test.ts', tests: 'the output shows what' },
  },
  {
    from: 'any job',
    tries: 'forge a row, or colours in a pipe, with a name',
    keeps: 'control characters are shown',
    proof: { file: 'test/cli/kit/output.test.ts', tests: 'the output has one line for each row' },
  },
  {
    from: 'any job',
    tries: 'put a formula into CSV',
    keeps: 'it is quoted',
    proof: { file: 'test/cli/kit/csv.test.ts', tests: 'a row of CSV' },
  },
  {
    from: 'any job',
    tries: 'forge calendar entries',
    keeps: 'ids and titles are escaped',
    proof: { file: 'test/cli/reservation/calendar.test.ts', tests: 'the iCalendar text' },
  },
  {
    from: 'any job',
    tries: 'redirect a download by a link',
    keeps: 'no link is followed',
    proof: { file: 'test/client/job/artifacts.test.ts', tests: 'artifacts are never written through' },
  },
  {
    from: 'any job',
    tries: 'harm readers of job.result()',
    keeps: 'pickles need trust_pickle; limits',
    proof: { file: 'test/bindings/crucible.test.ts', tests: 'the Python package crucible test_' },
  },
  {
    from: 'any job',
    tries: "fill a worker's memory with one object",
    keeps: 'size limit',
    proof: {
      file: 'test/activities/retraining/metrics.test.ts',
      tests: 'the metric of an evaluation is read from a file of 40 MiB',
    },
  },
  {
    from: 'any job',
    tries: 'read the key that signs results',
    keeps: 'only the runner has it',
    proof: { file: 'test/runner/result-key.test.ts', tests: 'the key that signs the result of a function' },
  },
  {
    from: 'job file',
    tries: 'contain __proto__ or unsendable text',
    keeps: 'an error',
    proof: { file: 'test/intake/job-file-problems.test.ts', tests: '' },
  },
  {
    from: 'job file',
    tries: 'freeze a reader with patterns, numbers or texts',
    keeps: 'limits, linear time',
    proof: { file: 'test/fuzz/fuzz.test.ts', tests: 'a reader of texts of strangers' },
  },
  {
    from: 'training script',
    tries: 'freeze `analyze`, or fill the memory',
    keeps: 'a thread with limits',
    proof: { file: 'test/analyze/hostile.test.ts', tests: 'the analysis of a hostile program' },
  },
  {
    from: 'job file',
    tries: 'escape bundles by links, or fill the disk',
    keeps: 'checks, limits',
    proof: { python: 'test_hostile_bundles' },
  },
  {
    from: 'any job',
    tries: 'escape checkpoint folders by manifests',
    keeps: 'paths, links checked',
    proof: { python: 'test_hostile_checkpoints' },
  },
  {
    from: 'provider',
    tries: 'have something bought by forged figures',
    keeps: 'limits',
    proof: { file: 'test/attacks/forged-figures.test.ts', tests: 'a quote' },
  },
  {
    from: 'provider',
    tries: 'hide or end machines by broken answers',
    keeps: 'compared with their calls',
    proof: { file: 'test/backends/broken-answers.test.ts', tests: 'an answer of' },
  },
  {
    from: 'provider',
    tries: 'stall us by endless answers',
    keeps: 'time limits',
    proof: { file: 'test/backends/ec2/broken-answers.test.ts', tests: 'an answer with' },
  },
]
