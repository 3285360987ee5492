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
    from: 'a user or process that reaches the Temporal server',
    tries: 'starts a workflow, without a key or with the key of another deployment',
    keeps: 'every input is signed with the key of the deployment',
    proof: { file: STRANGERS, tests: 'a stranger who reaches the Temporal server starts no job' },
  },
  {
    from: 'a user or process that reaches the Temporal server',
    tries: 'has workers run an activity such as launch or settle, also with arguments copied from a history',
    keeps: 'activities are signed for one activity of one run',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server launches and ends no machine',
    },
  },
  {
    from: 'a user or process that reaches the Temporal server',
    tries: 'sends updates and signals to a running job',
    keeps: 'updates and signals are signed; the others are rejected or dropped, and the job goes on',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server stops, moves and changes no job',
    },
  },
  {
    from: 'a user or process that reaches the Temporal server',
    tries: 'replays the signed input of a job under another id or type',
    keeps: 'the signature covers workflow id, type and time',
    proof: {
      file: STRANGERS,
      tests: 'a stranger who reaches the Temporal server does not run a job a second time',
    },
  },
  {
    from: 'a user or process that reaches the Temporal server',
    tries: 'changes signed arguments: their data, order, number, encoding, workflow or activity',
    keeps: 'the signature covers all of them',
    proof: { file: 'test/storage/payload-seal.test.ts', tests: 'PayloadSeal refuses' },
  },
  {
    from: 'a web page in a browser on the same machine',
    tries: "starts a workflow through a port of crucible dev's Temporal server",
    keeps: 'the HTTP API is closed, and the Web UI is hidden behind a door',
    proof: { file: DEV, tests: 'the ports of a dev server start no workflow for a web page' },
  },
  {
    from: 'a web page in a browser on the same machine',
    tries: 'reaches the Web UI by DNS rebinding or across origins',
    keeps: 'the door answers loopback names and its own origin only',
    proof: { file: 'test/cli/dev/temporal/ui-door.test.ts', tests: 'the door of the Web UI refuses' },
  },
  {
    from: 'another user of the same machine',
    tries: "reads the home: the database, the store, jobs' directories",
    keeps: 'the home is made, or changed to, 0700',
    proof: { file: 'test/storage/deployment-key.test.ts', tests: 'closeHome' },
  },
  {
    from: 'a worker or client with a wrong key',
    tries: 'joins the deployment',
    keeps: 'it compares its key with the one on record in the store, and does not start',
    proof: { file: 'test/storage/deployment-key.test.ts', tests: 'openDeploymentKey refuses' },
  },
  {
    from: 'a job in a container',
    tries: "reads its machine's key, its neighbours' files or the store",
    keeps: "only the job's own directories are mounted",
    proof: { file: WALLS, tests: 'a job in a real container sees its own directories' },
  },
  {
    from: 'a job in a container',
    tries: 'makes a device, mounts, changes the kernel, gains privileges',
    keeps: 'no-new-privileges, and six capabilities instead of all',
    proof: { file: WALLS, tests: 'a job in a real container has no more rights' },
  },
  {
    from: 'a job in a container',
    tries: 'gets files of its machine as artifacts by links',
    keeps: 'links that lead out of its directories are refused, step by step',
    proof: { file: WALLS, tests: 'a job in a real container gets no file of the host' },
  },
  {
    from: 'a job in a container',
    tries: 'has the runner write to its machine through a link',
    keeps: 'files in control/ are neither read nor written through links',
    proof: { file: WALLS, tests: 'a job in a real container leads no write of the runner' },
  },
  {
    from: 'a job in a container',
    tries: 'gets files of its machine into a checkpoint by links',
    keeps: 'links that lead out of its directories are left out, links inside go on working',
    proof: { file: WALLS, tests: 'a job in a real container gets no file of the host into a checkpoint' },
  },
  {
    from: 'a job on EC2',
    tries: "reads or changes other jobs and attempts in the store with its machine's credentials",
    keeps: 'a grant for one attempt, without a wildcard before the end of a prefix',
    proof: { file: 'test/small-cloud/front.test.ts', tests: 'grants let a machine do' },
  },
  {
    from: 'a job on EC2',
    tries: 'uses the store with the role of its machine',
    keeps: 'the role that set-up makes has nothing of the store, and doctor warns of one that has',
    proof: { file: 'test/backends/ec2/setup/permissions.test.ts', tests: 'the role of machines' },
  },
  {
    from: 'a local job without an image, beside workers that are root',
    tries: "reads the machine's key, the store, the worker's environment or another job's files",
    keeps: 'a user of its own, and directories that are closed to it',
    proof: { file: USERS, tests: 'a local job beside a worker that is root reads neither' },
  },
  {
    from: 'a local job without an image, beside workers that are root',
    tries: 'ends the processes of another job, of its runner or of a worker',
    keeps: 'a user of its own, which no other process has',
    proof: { file: USERS, tests: 'a local job beside a worker that is root ends no process' },
  },
  {
    from: 'a local job without an image, beside workers that are root',
    tries: "gets root's files as artifacts or into a checkpoint by links",
    keeps: 'the same rules for links as for a container',
    proof: { file: USERS, tests: 'a local job beside a worker that is root gets no file' },
  },
  {
    from: 'a local job without an image, beside workers that are root',
    tries: 'gains privileges, or starts a program of root with LD_PRELOAD',
    keeps: 'no-new-privileges, and root never runs with variables of the job',
    proof: { file: USERS, tests: 'a local job beside a worker that is root gets no rights' },
  },
  {
    from: 'a job',
    tries: 'leaves a daemon without parent and marks that outlives a killed guard',
    keeps: 'what a job starts is in a control group of its machine, where one can be made',
    proof: { file: 'test/runner/death.test.ts', tests: 'daemons that outlive guard, runner and leash' },
  },
  {
    from: 'a job',
    tries: 'exchanges a file for a link between look and open',
    keeps: 'every step of a path is opened without following links',
    proof: { python: 'test_walls' },
  },
  {
    from: 'a job',
    tries: 'keeps the runner busy with a terabyte of holes, or with an artifact that cannot be read',
    keeps: 'files of holes are left out, the others are kept, the small ones first',
    proof: { python: 'test_keeper' },
  },
  {
    from: 'a job',
    tries: "makes links or pictures on Temporal's pages by its messages and names",
    keeps: 'text from outside is escaped in one place',
    proof: { file: 'test/core/markdown.test.ts', tests: 'text from outside in markdown' },
  },
  {
    from: 'a job',
    tries: 'prints a secret in base64, in a URL or in JSON',
    keeps: 'the log has *** in its place',
    proof: { python: 'test_logs' },
  },
  {
    from: 'a job',
    tries: "controls the user's terminal by its log, its name or its artifacts",
    keeps: 'control sequences are shown, not obeyed',
    proof: { file: 'test/cli/output.test.ts', tests: 'the output shows what' },
  },
  {
    from: 'a job file',
    tries: 'sets __proto__, or holds text that cannot be sent to any machine',
    keeps: 'intake names the line and the column',
    proof: { file: 'test/intake/job-file-problems.test.ts', tests: '' },
  },
]
