// Asks croner for the next times of schedules. Standard input is a JSON array of
// {expr, zone, from, count}; standard output one of arrays of times, or of what it says
// instead of taking the expression. The argument is croner's folder.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const { Cron } = await import(pathToFileURL(process.argv[2] + '/dist/croner.js').href);
const answers = JSON.parse(readFileSync(0, 'utf8')).map(({ expr, zone, from, count }) => {
	try {
		const job = new Cron(expr, { timezone: zone, paused: true });
		return { times: job.nextRuns(count, new Date(from)).map((d) => d.toISOString()) };
	} catch (e) {
		return { error: String(e) };
	}
});
process.stdout.write(JSON.stringify(answers));
